-- What "prisma migrate dev --create-only" writes for schema.prisma, with two changes by hand:
-- USING art, and the parameters.
CREATE TABLE "orders" (
    "id" BIGSERIAL NOT NULL,
    "token" UUID NOT NULL,
    "account" BIGINT NOT NULL,
    "created" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT "orders_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "orders_token" ON "orders" USING art ("token") WITH (sync = rowex);
CREATE INDEX "orders_account" ON "orders" USING art ("account", "created" DESC);
