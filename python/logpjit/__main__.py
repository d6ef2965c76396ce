"""python -m logpjit: what logpjit.doctor() finds, as JSON."""

import json

from ._doctor import doctor

print(json.dumps(doctor(), indent=2))
