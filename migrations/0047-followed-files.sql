-- How far a file that grows has been recorded. `device`, `inode` and `head`, a hash of the first line, tell whether a file is the one
-- that was followed before; `device` and `inode` may be beyond bigint.
create table followed_file (
  tenant text collate "C" not null references tenant (tenant),
  path text collate "C" not null,
  device text collate "C" not null,
  inode text collate "C" not null,
  head text collate "C" not null,
  head_bytes bigint not null,
  recorded bigint not null,
  primary key (tenant, path)
);
