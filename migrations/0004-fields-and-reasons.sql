-- An export with a row for each path: the number of the last written path of its last entry.
alter table job add column last_path bigint;

-- Why a delivery attempt failed, as a word of the API.
alter table delivery_attempt add column reason text collate "C";
