import uuid

from django.db import models

from shop.indexes import ArtIndex


class Order(models.Model):
    token = models.UUIDField(default=uuid.uuid4)
    account = models.BigIntegerField()
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            ArtIndex(fields=["token"], name="order_token_art", options={"sync": "rowex"}),
            ArtIndex(fields=["account", "-created"], name="order_account_art"),
        ]
