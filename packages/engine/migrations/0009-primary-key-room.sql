-- A claim writes a second version of every row, and with it a second entry into the primary key, beside the first. With
-- room on the pages it finds a place; without, nearly every page is split, which is logged.
alter index live_jobs_pkey set (fillfactor = 50);
