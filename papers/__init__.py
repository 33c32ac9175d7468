"""The figures of the papers: what each computes, how it is drawn, what it claims."""
