# SPDX-License-Identifier: Apache-2.0
"""RR-6205 (Soudan, Guillier, Primet 2007) again: two sources, two sinks, one bottleneck, and the ways to share it.

setting.py     what is fixed: the link, the volumes, the strategies, the ideal
run.py         the records, and the file that they are kept in
stage.py       the laboratory with a broker and four agents
strategies.py  one repetition of each strategy
steps.py       a booking whose rate changes: segments and re-pacing
watch.py       what the kernels' sockets say meanwhile
plain.py       the mover without a booking (IFS)
analysis.py    means, percentiles, intervals; tables.py, figures.py and required.py are made from them
"""
