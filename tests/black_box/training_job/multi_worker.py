# What a worker of a TensorFlow job runs that trains together with the others: it meets them by TF_CONFIG alone, and tells the sum of
# what each of them brings along. Every worker brings another power of two, so the sum says who took part.
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
share = tf.constant(2 ** resolver.task_id)


@tf.function
def add():
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, share)


total = int(strategy.run(add))
print("rank", resolver.task_id, "of", strategy.num_replicas_in_sync, "sums up to", total, flush=True)
