"""The texts of the notebooks; a wheel holds the texts themselves in this folder, too."""
