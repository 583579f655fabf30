import {
  Body,
  type CanActivate,
  ConflictException,
  Controller,
  type ExecutionContext,
  Get,
  HttpCode,
  Injectable,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThanOrEqual, type Repository } from 'typeorm';
import { Order, Product } from './entities.js';

// Yours come from sessions.
const people = new Map([
  ['Bearer jane', { id: 'u-17', name: 'Jane Doe' }],
  ['Bearer john', { id: 'u-18', name: 'John Roe' }],
]);

export interface ShopRequest {
  headers: Record<string, string | undefined>;
  person?: { id: string; name: string } | undefined;
}

@Injectable()
class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<ShopRequest>();
    request.person = people.get(request.headers.authorization ?? '');
    if (request.person === undefined) throw new UnauthorizedException();
    return true;
  }
}

@Controller('orders')
@UseGuards(SignedIn)
export class Orders {
  constructor(@InjectRepository(Order) private readonly orders: Repository<Order>) {}

  @Get()
  async list(): Promise<Order[]> {
    return await this.orders.find({ order: { id: 'DESC' }, take: 20 });
  }

  @Post()
  async place(@Body() { product, quantity }: { product: number; quantity: number }): Promise<Order> {
    return await this.orders.manager.transaction(async (manager) => {
      const inStock = { id: product, stock: MoreThanOrEqual(quantity) };
      const { affected } = await manager.decrement(Product, inStock, 'stock', quantity);
      if (affected === 0) throw new ConflictException('not in stock');
      return await manager.save(Order, { product, quantity });
    });
  }

  @Post(':id/cancel')
  @HttpCode(200)
  async cancel(@Param('id', ParseIntPipe) id: number): Promise<Order> {
    const order = await this.orders.findOneBy({ id });
    if (order === null) throw new NotFoundException();
    return await this.orders.save({ ...order, state: 'cancelled' });
  }
}
