"""The living page: a trained model in one HTML file, to type into, look into and change; see `live.explore_live`."""
