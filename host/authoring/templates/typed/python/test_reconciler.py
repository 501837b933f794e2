"""The plugin as a plain function: no cluster, no WebAssembly. `python3 -m unittest`"""

import json
import unittest

from pilothouse import Request
from reconciler import reconcile

# The object in object.yaml.
OBJECT = json.loads({{object.literal}})


class Reconcile(unittest.TestCase):
    def test_the_object_is_read_and_becomes_a_config_map(self):
        answer = reconcile(Request(OBJECT))
        self.assertEqual(answer.verdict, "done")
        self.assertEqual([child.object["kind"] for child in answer.children], ["ConfigMap"])


if __name__ == "__main__":
    unittest.main()
