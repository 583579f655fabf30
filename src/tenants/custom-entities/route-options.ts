import type { Paginator } from '../../pagination/paginator.ts';
import type { CustomEntities } from './service.ts';

export interface CustomEntityRoutesOptions {
  customEntities: CustomEntities;
  paginator: Paginator;
}
