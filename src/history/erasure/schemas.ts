import { Type } from 'typebox';
import { listItem } from '../../http/openapi/components.ts';
import { erasureReasons } from './subject.ts';

const Erasure = Type.Object(
  {
    id: Type.String({ description: 'What `annals erase` printed.' }),
    begunAt: Type.String({ format: 'date-time' }),
    endedAt: Type.Optional(
      Type.String({ format: 'date-time', description: 'Missing while it is running, or if it was interrupted.' }),
    ),
    reason: Type.Enum([...erasureReasons], { type: 'string' }),
    entries: Type.Integer({ minimum: 0, description: 'The number of changes that it altered.' }),
  },
  {
    $id: 'Erasure',
    description: 'When, why and how much was erased, without the person or document.',
    examples: [
      {
        id: '7c2f6f0e-35a0-4b4a-9a55-1f6f2c0d8e21',
        begunAt: '2026-09-01T09:30:00.000Z',
        endedAt: '2026-09-01T09:30:04.120Z',
        reason: 'request',
        entries: 128,
      },
    ],
  },
);

export const ErasureItem = listItem('ErasureItem', Erasure);
