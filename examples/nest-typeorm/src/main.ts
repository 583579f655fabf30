import { nest } from '@annals/client/context';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Order, Product } from './entities.js';
import { Orders, type ShopRequest } from './orders.js';

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: process.env.DATABASE_URL ?? '',
      entities: [Order, Product],
      extra: { max: 4 },
    }),
    TypeOrmModule.forFeature([Order]),
  ],
  controllers: [Orders],
})
class Shop {}

const app = await NestFactory.create(Shop, { logger: ['error'] });
// This line, and the flag --import in package.json, are all that Annals adds to the shop.
app.useGlobalInterceptors(nest(({ person }: ShopRequest) => ({ actor: person?.name, actorId: person?.id })));
app.enableShutdownHooks();
await app.listen(Number(process.env.PORT ?? 3000));
console.log(await app.getUrl());
