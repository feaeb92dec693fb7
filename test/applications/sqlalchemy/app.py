"""A model with art indexes, created by SQLAlchemy and migrated by Alembic."""

import sys

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import BigInteger, DateTime, Index, Uuid, create_engine, func, inspect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    token: Mapped[str] = mapped_column(Uuid)
    account: Mapped[int] = mapped_column(BigInteger)
    created: Mapped[str] = mapped_column(DateTime(timezone=True), server_default=func.now())
    __table_args__ = (
        Index("orders_token", "token", unique=True,
              postgresql_using="art", postgresql_with={"sync": "rowex"}),
    )


engine = create_engine("postgresql+psycopg://")
Base.metadata.create_all(engine)

with engine.begin() as connection:
    context = MigrationContext.configure(connection)
    # a migration: what op.create_index does in a file of Alembic's
    Operations(context).create_index(
        "orders_account", "orders", ["account", "created"],
        postgresql_using="art", postgresql_with={"structure": "btree"})
    Index("orders_account", Order.account, Order.created,
          postgresql_using="art", postgresql_with={"structure": "btree"})
    differences = compare_metadata(context, Base.metadata)

# under a setting: an index that leaves the access method open
eager = create_engine("postgresql+psycopg://", connect_args={"options": "-c artidx.replace_btree=indexes"})
with eager.begin() as connection:
    Index("orders_created", Order.created).create(connection)
    context = MigrationContext.configure(connection)
    print("replace_btree = indexes:", compare_metadata(context, Base.metadata))

print("autogenerate:", differences)
for index in sorted(inspect(engine).get_indexes("orders"), key=lambda i: i["name"]):
    print(index["name"], index["dialect_options"])
sys.exit(1 if differences else 0)
