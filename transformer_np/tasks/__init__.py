"""What the models are put to use for: data, model, training and decoding brought together, and the folders of runs."""
