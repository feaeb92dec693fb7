from django.contrib.postgres.indexes import PostgresIndex


class ArtIndex(PostgresIndex):
    """An index USING art, with its storage parameters as keyword arguments."""

    suffix = "art"

    def __init__(self, *expressions, options=None, **kwargs):
        self.options = options or {}
        super().__init__(*expressions, **kwargs)

    def deconstruct(self):
        path, args, kwargs = super().deconstruct()
        if self.options:
            kwargs["options"] = self.options
        return path, args, kwargs

    def get_with_params(self):
        return [f"{name} = {value}" for name, value in self.options.items()]
