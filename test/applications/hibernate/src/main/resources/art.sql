create unique index orders_token on orders using art (token) with (sync = rowex);
create index orders_account on orders using art (account, created desc);
