create database shop; use shop;
create table places (id int primary key, g point not null, v varchar(90), u uuid, w varchar(5) charset cp1251, b varbinary(3), ge geometry, ip6 inet6, l linestring, e enum('a','b''s','c\\d') charset utf8mb4, s set('x','y'), t text charset latin2, bl blob, c char(3) charset utf8mb3, j json, d decimal(7,2), bit bit(9), ts timestamp(3) null, dt datetime, tm time(2), f float, db double, y year, mt mediumtext, mp multipoint, ip4 inet4) default charset latin1;
insert into places values (1, point(1,2), 'x\r', '00112233-4455-6677-8899-aabbccddeeff', 'y', 'q', point(3,4), '::1', linestring(point(0,0),point(1,1)), 'b''s', 'x,y', 'žz\t\n\'"\\', 'b\0c\Z', 'é', '{"a":1}', 12.5, b'101', '2026-01-02 03:04:05.678','2026-01-02 03:04:05','11:22:33.44',1.5,2.5,2026, 'm', multipoint(point(1,1)), '1.2.3.4');
insert into places (id,g,v) values (2, point(1,2), 'c \' quote " dq \\ back \n nl \t tab \0 nul \b');
update places set g=point(9,9) where id=1;
delete from places where id=2;
create table packed (b varchar(10) charset latin1, g geometrycollection, x varchar(9) charset utf8mb4, a varchar(10) compressed charset latin1, d text compressed charset latin1) default charset utf8mb4;
insert into packed values ('b\'',NULL,'x','a','d\n');
flush binary logs;
