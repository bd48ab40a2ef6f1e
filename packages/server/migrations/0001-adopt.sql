-- Tokens and idempotency keys were made by the engine's migrations 0002 and 0011, which stay as they were released: every
-- database has these tables before this set is applied, old or new, and ends with the same ones. From here on they are
-- the server's, and changes to them are migrations of this set. What follows states the form they are taken over in.

create table if not exists tokens (
  token_id text primary key, -- the part of the token that is no secret, by which it is looked up
  name text not null,
  role text not null,
  hash bytea not null,
  created_at timestamptz not null,
  created_by text,
  last_used_at timestamptz, -- written at most once a minute
  revoked_at timestamptz,
  revoked_by text,
  expires_at timestamptz,
  constraint tokens_role check (role in ('viewer', 'operator', 'admin')),
  constraint tokens_hash check (octet_length(hash) = 32)
);
create unique index if not exists tokens_name on tokens (name) where revoked_at is null;

create table if not exists idempotency_keys (
  caller text not null,
  key text not null,
  request_hash bytea not null,
  answer text, -- null only inside the transaction that takes the key
  created_at timestamptz not null,
  primary key (caller, key)
);
create index if not exists idempotency_keys_age on idempotency_keys (created_at);
