"""Writes and reads by the model, and asks Django what it sees of the indexes."""

import uuid

import django

django.setup()

from django.db import connection, models  # noqa: E402
from shop.models import Order  # noqa: E402

token = uuid.uuid4()
Order.objects.create(token=token, account=7)
print("found:", Order.objects.get(token=token).account == 7)
with connection.cursor() as cursor:
    seen = connection.introspection.get_constraints(cursor, "shop_order")
print("seen:", seen["order_token_art"]["type"], seen["order_account_art"]["orders"])


def toggle_index(on):
    """What a migration does that gives a field db_index, or takes it away."""
    old, new = models.BigIntegerField(db_index=not on), models.BigIntegerField(db_index=on)
    for field in (old, new):
        field.set_attributes_from_name("account")
        field.model = Order
    with connection.schema_editor() as editor:
        editor.alter_field(Order, old, new)


for setting in ("off", "indexes"):
    with connection.cursor() as cursor:
        cursor.execute(f"SET artidx.replace_btree = {setting}")
    try:
        toggle_index(True)
        toggle_index(False)
        toggle_index(True)
        toggle_index(False)
        print(f"replace_btree = {setting}: db_index can be set and taken away")
    except django.db.utils.ProgrammingError as error:
        print(f"replace_btree = {setting}:", str(error).splitlines()[0])
