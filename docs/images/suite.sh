#!/bin/sh
# Makes suite.png: a suite of real questions with synthetic answers (see benchmarks/report_page.py). Run it in a clone. As root, Chromium needs CHROMIUM_FLAGS=--no-sandbox.
set -e
python benchmarks/report_page.py --rounds 1 --rows 1000 --keep suite
chromium ${CHROMIUM_FLAGS:-} --headless --hide-scrollbars --virtual-time-budget=10000 --window-size=1400,1240 --screenshot=suite.png "file://$PWD/suite/0/report.html"
python -c "from PIL import Image; Image.open('suite.png').convert('RGB').quantize(128).save('suite.png', optimize=True)"
