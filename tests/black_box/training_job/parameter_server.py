# What every replica of a TensorFlow job with a parameter server runs: workers and parameter servers wait for work, and the chief hands
# it out and tells what became of it.
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    spec = resolver.cluster_spec()
    tf.distribute.Server(spec, job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc").join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0, dtype=tf.int64)


@tf.function
def add():
    total.assign_add(1)


for _ in range(8):
    coordinator.schedule(add)
coordinator.join()
print("the workers have added up", int(total.numpy()), flush=True)
