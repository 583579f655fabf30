import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

@Entity('products')
export class Product {
  @PrimaryColumn('int')
  id!: number;

  @Column('text')
  name!: string;

  @Column('int')
  stock!: number;
}

@Entity('orders')
export class Order {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' })
  id!: number;

  @Column('int')
  product!: number;

  @Column('int')
  quantity!: number;

  @Column('text', { default: 'open' })
  state!: string;
}
