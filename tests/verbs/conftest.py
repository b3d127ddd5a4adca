from tests.cli.conftest import done as done
from tests.cli.conftest import refused as refused
from tests.cli.conftest import run as run
