# What `import tfcomp` offers, for type checkers; `__init__.py` has where it is.
from tfcomp.config.errors import ConfigError as ConfigError
from tfcomp.config.errors import RunError as RunError
from tfcomp.config.plugins import register_callback as register_callback
from tfcomp.config.run_config import RunConfig as RunConfig
from tfcomp.datasets.factor_table import FactorTable as FactorTable
from tfcomp.figures.exhibits import Exhibit as Exhibit
from tfcomp.metrics.registry import register_measure as register_measure
from tfcomp.metrics.registry import register_metric as register_metric
from tfcomp.report.coverage import coverage_table as coverage_table
from tfcomp.report.coverage import plot_coverage as plot_coverage
from tfcomp.report.model_report import ModelReport as ModelReport
from tfcomp.report.model_report import evaluate as evaluate
from tfcomp.report.model_report import load_published as load_published
from tfcomp.report.model_report import load_run as load_run
from tfcomp.report.model_report import write_report as write_report
from tfcomp.report.page import register_section as register_section
from tfcomp.report.representations import (
    evaluate_embeddings as evaluate_embeddings,
)
from tfcomp.report.representations import evaluate_encoder as evaluate_encoder
from tfcomp.report.table_plots import plot_curves as plot_curves
from tfcomp.report.table_plots import plot_scores as plot_scores
from tfcomp.report.untrained_coverage import (
    cover_embeddings as cover_embeddings,
)
from tfcomp.representations.readers import Reader as Reader
from tfcomp.representations.readers import train_reader as train_reader
from tfcomp.storage.run_folder import list_published as list_published
from tfcomp.sweep import run_sweep as run_sweep
from tfcomp.tables import load_sweep as load_sweep
from tfcomp.tables import read_runs as read_runs
from tfcomp.train import describe_run as describe_run
from tfcomp.train import train_run as train_run

__version__: str
