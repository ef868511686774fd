"""Devices and the distribution strategy of a run."""

import tensorflow as tf

from tfcomp.config.errors import ConfigError
from tfcomp.config.process import count_cores, keep_freed_memory
from tfcomp.config.quiet import quiet_startup


def make_strategy(num_replicas: int = 0) -> tf.distribute.MirroredStrategy:
    """Mirrors variables over all GPUs, or over logical CPU devices.

    0 replicas mean one on every GPU, or one on the CPU. Tests split the CPU,
    which must happen before TensorFlow uses a device. On GPUs, kernels are
    deterministic: the same flags give the same bits.

    Raises:
        ConfigError: There are too few devices.
    """
    keep_freed_memory()
    with quiet_startup():
        gpus = tf.config.list_physical_devices("GPU")
    available = len(gpus) or count_cores()
    if num_replicas > available:
        kind = "GPUs" if gpus else "CPU cores"
        rule = f"must be at most the {available} {kind} of this machine"
        raise ConfigError("num_replicas", rule, num_replicas)
    count = num_replicas or len(gpus) or 1
    if gpus:
        tf.config.experimental.enable_op_determinism()
    elif count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        known = tf.config.get_logical_device_configuration(cpu) or []
        if len(known) < count:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * count
            )
    kind = "GPU" if gpus else "CPU"
    devices = [f"{kind}:{index}" for index in range(count)]
    return tf.distribute.MirroredStrategy(devices)


def give_to_devices(
    batches: tf.data.Dataset, strategy: tf.distribute.Strategy
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Distributes batches; on one CPU device, without a buffer.

    The tuning thread of TensorFlow's buffer sleeps for up to a minute, and the
    end of a training may wait for it.
    """
    gpus = tf.config.list_logical_devices("GPU")
    if gpus or strategy.num_replicas_in_sync > 1:
        return batches
    modes = tf.distribute.InputReplicationMode
    options = tf.distribute.InputOptions(
        experimental_fetch_to_device=False,
        experimental_replication_mode=modes.PER_REPLICA,
    )
    return strategy.distribute_datasets_from_function(
        lambda context: batches, options
    )
