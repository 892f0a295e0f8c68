"""The sizes of pictures: points and inches."""

TEXT, TITLE = 9, 11  # points
# Inches. A page of width 8 has 1200 pixels, and is still readable in a README that shows 800.
PAGE = (8.0, 8.0)  # a picture with words has about this width and height …
LARGEST_PAGE = (14.0, 14.0)  # … unless it has too many words; beyond this, only every second, fifth … word is shown
CELL = 0.8  # one square of a heatmap, at most
CELL_WITH_VALUE = 0.36  # and at least, to print a number in it
LINE = 0.155  # a line of text
LABEL = 0.2  # an axis label, or the title of a panel
EDGE, PAD, GAP = 0.1, 0.07, 0.14  # blank: at the figure's edge, around words, between panels
THUMBNAIL = 0.45  # the least side of a panel without words
LONGEST_WORD = 20  # characters
