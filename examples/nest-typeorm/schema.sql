create table products (id int primary key, name text not null, stock int not null);
create table orders (
  id int primary key generated always as identity,
  product int not null references products,
  quantity int not null,
  state text not null default 'open'
);
insert into products values (1, 'Desk lamp', 10), (2, 'Chair', 4);
