"""The plugin as a plain function: no cluster, no WebAssembly. `python3 -m unittest`"""

import unittest

from pilothouse import Request
from reconciler import reconcile


class Reconcile(unittest.TestCase):
    def test_the_deployment_has_the_replicas_of_its_object(self):
        answer = reconcile(Request({"metadata": {"name": "first"}, "spec": {"image": "nginx", "replicas": 3}}))
        self.assertEqual(answer.verdict, "done")
        self.assertEqual([child.object["spec"]["replicas"] for child in answer.children], [3])


if __name__ == "__main__":
    unittest.main()
