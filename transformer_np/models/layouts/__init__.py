"""Layouts of pretrained folders: how Hugging Face names and stores the settings and weights of a model.

A layout is a module, one file per family. It imports no model; a model class names its layouts in `layouts`.

MODEL_TYPES: the values of `model_type` in config.json that it reads; the first is written, unless `write_config`
    returns another
PREFIX: in a file of a model with a head, the prefix of all tensor names except those of the head
BUFFERS: a pattern for the standard names of tensors that are not learned; they are ignored
HEADS: {prefix of the names of a head that the model lacks: its task}; they are ignored with a warning

read_config(settings, weights): from config.json, a dict, and the open file to the keyword arguments of the model's
    configuration, all but `dtype`; ValueError for a setting that the model does not support
write_config(config): from the configuration to config.json
COPIES: {name of a tensor that repeats another one if the weights are tied, or stands for it: that name}; ALWAYS: those
    that do so even if they are not;  TIED: whether they are tied if config.json does not say
body(config), heads(config): {standard name: layout.Stored}, inside and outside the prefix

Some layouts also have
duplicates(config): names of tensors in the file that repeat another tensor (otherwise COPIES or ALWAYS)
standard_name(name): of a tensor, without the prefix: the spelling that the functions above use
prefix(config): the prefix to write, "" or PREFIX (otherwise PREFIX)
writable(model): the model, or an equal one that the layout can represent; ValueError if there is none
"""
