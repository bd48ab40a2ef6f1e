-- Tokens may end by themselves, and a name says whose a token is: of those in use, one has it.
alter table tokens add column expires_at timestamptz;

update tokens set name = left(name, 87) || ' ' || token_id
 where revoked_at is null
   and exists (select from tokens earlier
                where earlier.name = tokens.name and earlier.revoked_at is null and earlier.token_id < tokens.token_id);
create unique index tokens_name on tokens (name) where revoked_at is null;
