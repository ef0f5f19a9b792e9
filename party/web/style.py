"""Style of the owner's page: the style of the pages about releases, with navigation and forms."""

from jobs.page.html import STYLE as OF_RELEASES

STYLE = (
    OF_RELEASES
    + """
.skip { position: absolute; left: -100rem; }
.skip:focus { position: static; display: inline-block; padding: .5rem 1rem; }
header { border-bottom: 1px solid var(--line); background: var(--box); }
.bar { max-width: 60rem; margin: 0 auto; padding: .5rem 1rem; display: flex; flex-wrap: wrap; align-items: center;
  gap: .2rem 1rem; }
.bar strong { overflow-wrap: anywhere; }
.bar ul { list-style: none; display: flex; flex-wrap: wrap; margin: 0; padding: 0; gap: 0 .3rem; max-width: none; }
.bar li { margin: 0; }
.bar nav { flex: 1 1 auto; }
.bar a { display: inline-block; padding: .35rem .6rem; text-decoration: none; border-bottom: 3px solid transparent; }
.bar a:hover { text-decoration: underline; }
.bar a[aria-current] { border-color: var(--link); font-weight: 600; color: var(--ink); }
a:focus-visible, button:focus-visible, input:focus-visible, textarea:focus-visible, select:focus-visible,
  .scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
main > h2:first-of-type { margin-top: 1.4rem; }
section h2 { overflow-wrap: anywhere; }
.warning h2 { border: 0; margin-top: 0; padding-top: 0; }
button { font: inherit; font-weight: 600; padding: .45rem 1rem; border-radius: .3rem; border: 1px solid var(--link);
  background: var(--page); color: var(--link); cursor: pointer; min-height: 2.5rem; }
button.main { background: var(--link); color: var(--page); }
button.bad { border-color: var(--bad); color: var(--bad); }
.bar button { border-color: transparent; background: none; font-weight: 400; padding: .35rem .6rem; }
label { display: block; font-weight: 600; margin-top: .7rem; }
input, textarea, select { font: inherit; color: var(--ink); background: var(--page); border: 1px solid var(--soft);
  border-radius: .3rem; padding: .4rem .6rem; max-width: 100%; min-height: 2.5rem; }
textarea { width: 100%; min-height: 6rem; resize: vertical; }
input[type=number] { width: 9rem; }
.hint { color: var(--soft); font-size: .9rem; margin: .1rem 0 .3rem; }
form p { margin-top: .9rem; }
.forms { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
.forms form { background: var(--box); border: 1px solid var(--line); border-radius: .4rem; padding: .2rem 1rem 1rem; }
.forms h3 { margin-top: .8rem; }
.filter { display: flex; flex-wrap: wrap; align-items: end; gap: .6rem; }
.filter p { margin: 0; }
.words { overflow-wrap: anywhere; }
.cards { list-style: none; padding: 0; max-width: none; }
.cards > li { border: 1px solid var(--line); border-radius: .4rem; padding: .6rem 1rem; margin: .6rem 0;
  overflow-wrap: anywhere; }
.cards p { margin: .15rem 0; max-width: none; }
@media print { header, .forms, .filter { display: none; } }
"""
)
"""The only style of the owner's page."""
