"""Pages: facts folded from a run's journal, and the HTML and Markdown made of them; report and console share both."""
