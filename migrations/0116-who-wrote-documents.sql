-- People who signed in with a company's account write documents of this service. Such a person has a row, with what the OpenID provider
-- knows them by and without a name: change_entry.actor has that. The service itself has none.
alter table change_recorder alter column name drop not null;
alter table change_recorder add column issuer text collate "C", add column subject text collate "C";
alter table change_recorder drop constraint change_recorder_way_check;
alter table change_recorder add constraint change_recorder_way_check check (way in ('service', 'recorder', 'capture', 'relay'));
