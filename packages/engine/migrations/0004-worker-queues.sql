-- The queues that a worker claims from, so that explain can tell when nobody serves a job's queue.
-- Null for a worker of the previous release, which does not say.
alter table workers add column queues text[];
