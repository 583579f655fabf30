-- The length of a cell of that level, in milliseconds; the children of level 4 are seconds.
create function change_cell(level integer) returns bigint language sql immutable parallel safe as
  'select (array[88473600000, 2764800000, 86400000, 3600000, 60000, 1000]::bigint[])[level + 1]';
