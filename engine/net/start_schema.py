"""The table definitions that a stream starts with."""

from __future__ import annotations

from engine.net.batching.schema_follower import Definitions, Here, Proofs, SchemaFollower
from engine.output.schema_history import stored_schema
from engine.pipeline.process_settings import SchemaOptions
from engine.schema.model import SchemaModel
from engine.schema.schema_file import read_schema_file
from engine.schema.server_settings import USUAL_SETTINGS, ServerSettings


def open_schema(
    options: SchemaOptions,
    flavor: str,
    here: Here,
    *,
    settings: ServerSettings = USUAL_SETTINGS,
    proofs: Proofs | None = None,
    charsets_are_missing: bool = True,
) -> SchemaFollower:
    """A follower whose model has the definitions of the output's last commit, if there is one.

    `here` returns the stream's position; see `Definitions` for `proofs` and `charsets_are_missing`. Raises
    `EngineError` for a schema file or a commit log that cannot be read.
    """
    model = SchemaModel(flavor, settings)
    if options.out is not None:
        model.restore(stored_schema(options.out, options.commit))
    given = None if options.schema_file is None else read_schema_file(options.schema_file, flavor)
    sources = Definitions(proofs, given, charsets_are_missing, options.numbers_unknown)
    return SchemaFollower(model, flavor, sources, here)
