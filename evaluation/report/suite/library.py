"""The table library of the page, DataTables: taken from the package itables, which carries it.

itables (MIT, no dependencies) holds DataTables and jQuery (both MIT) bundled as one JavaScript
module. Its bundle of 0.6 MB is smaller, and lighter to install, than what carries
Vega (0.9 MB, in a wheel of 33 MB), Bokeh or Plotly.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from kbprobe.errors import KbprobeError, require

_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?")
_DEFAULT = re.compile(r"(?:^|,)\s*([\w$]+) as default\s*(?:,|$)")


def table_library() -> str:
    """Return DataTables as a script that defines ``window.DataTable``, licences included.

    Raises:
        MissingDependencyError: itables is not installed.
        KbprobeError: it is of a version that holds DataTables in another form.
    """
    require("itables", "report", "making the page of a suite")
    spec = find_spec("itables")  # Importing it would import pandas as well.
    try:
        if spec is None or spec.origin is None:
            raise ValueError("no folder of the package")
        bundle = Path(spec.origin).parent / "html" / "dt_bundle.js"
        return as_script(bundle.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise KbprobeError(
            "The installed itables does not hold DataTables in the form that is expected "
            f"({error}). Install a version that is known to work: pip install 'itables>=2.9,<3'"
        ) from error


def as_script(module: str) -> str:
    """Make a script of a module: instead of exporting a class it sets ``window.DataTable``.

    >>> as_script("class A{} export{B as other,A as default};")
    'class A{} window.DataTable=A;'

    Raises:
        ValueError: it has no default export.
    """
    exports = _EXPORTS.findall(module)
    name = _DEFAULT.search(exports[0]) if len(exports) == 1 else None
    if name is None:
        raise ValueError("no default export")
    script = _EXPORTS.sub(lambda _: f"window.DataTable={name[1]};", module)
    return inline(script)


def inline(script: str) -> str:
    r"""Return a script as it can be part of a page: nothing in it ends its element, or hides this.

    In strings and regular expressions, where such texts are, the backslash changes nothing.

    >>> print(inline("'<!--' + '</script>'"))
    '<\!--' + '<\/script>'
    """
    script = script.replace("\r\n", "\n").replace("<!--", r"<\!--")
    return re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)
