"use strict";
(() => {
  const find = (name) => document.getElementById(name);

  // What a link leads to is unfolded.
  const follow = (hash) => {
    const target = hash && find(decodeURI(hash.slice(1)));
    for (let at = target; at; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", () => follow(location.hash));
  document.querySelectorAll("nav a").forEach((link) =>
    link.addEventListener("click", () => follow(link.hash)));
  follow(location.hash);

  const parts = [...document.querySelectorAll("details.part")];
  const unfold = find("page-unfold");
  unfold.hidden = parts.length === 0;
  unfold.addEventListener("click", () => {
    const open = parts.some((part) => !part.open);
    parts.forEach((part) => { part.open = open; });
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });

  let folded = [];  // what printing has unfolded
  addEventListener("beforeprint", () => {
    folded = parts.filter((part) => !part.open);
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () =>
    folded.forEach((part) => { part.open = false; }));

  const zoom = find("page-zoom"), large = zoom.querySelector("img");
  document.querySelectorAll("a.zoom").forEach((link) =>
    link.addEventListener("click", (event) => {
      const small = link.querySelector("img");
      [large.src, large.alt] = [small.src, small.alt];
      zoom.showModal();
      event.preventDefault();
    }));
  zoom.addEventListener("click", (event) => {
    if (event.target === zoom || event.target === large) zoom.close();
  });
})();
