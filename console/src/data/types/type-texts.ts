import type { CustomEntityType } from '@annals/client';
import { textFor } from '../../components/texts.ts';

/** What a type is called. */
export function typeTitle({ id, name }: Pick<CustomEntityType, 'id' | 'name'>): string {
  return textFor(name) ?? id;
}
