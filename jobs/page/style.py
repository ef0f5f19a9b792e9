"""Style of pages: readable on paper, on narrow screens, in light and dark."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --soft: #545b66; --line: #d4d8de; --page: #ffffff; --box: #f4f6f8;
  --bar: #2f6fb5; --bad: #a3261b; --link: #1a56a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #a9b0bb; --line: #3a404a; --page: #16181d;
  --box: #1f232a; --bar: #6aa5e6; --bad: #ff9f94; --link: #8cbcf5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  overflow-wrap: break-word; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--link); }
.soft { color: var(--soft); }
.warning { background: var(--box); border-left: .3rem solid var(--bad); padding: .7rem 1rem; margin: .6rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
td:nth-child(2):not(:last-child), thead th:nth-child(2) { white-space: nowrap; overflow-wrap: normal; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; min-width: 7rem; }
th.long { overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.bars td, .bars th { border: 0; padding: .12rem .8rem .12rem 0; font-weight: 400; }
.bars th { width: 32%; overflow-wrap: anywhere; }
.bars td.number { width: 6.5rem; }
.bars svg { display: block; width: 100%; height: .9rem; margin-top: .3rem; }
rect { fill: var(--bar); }
ul { margin: .4rem 0; padding-left: 1.2rem; max-width: 46rem; }
li { margin: .2rem 0; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0 0 .3rem; max-width: 46rem; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
@media (max-width: 34rem) { tbody th { min-width: 4.5rem; } .bars th { width: 45%; }
  th, td { padding-right: .5rem; } .scroll table { font-size: .85rem; } .scroll :is(td, th) { padding-right: .4rem; }
  .scroll :is(td, th):is(:nth-child(-n+3):not(:first-child, :last-child), .number) { white-space: normal;
    overflow-wrap: normal; } }
@media print { :root { --ink: #000; --soft: #333; --line: #bbb; --page: #fff; --box: #fff; --bar: #555;
  --bad: #000; --link: #000; } body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; } tr, .warning { break-inside: avoid; }
  rect { fill: #555; print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
"""The only style of a page; its digest stands in the page's policy."""
