import { Type } from 'typebox';
import { maxRecorders } from './recorder-store.ts';

const time = (description: string) => Type.String({ format: 'date-time', description });

export const ChangeRecorders = Type.Object(
  {
    recorders: Type.Array(
      Type.Object(
        {
          way: Type.Union(
            [
              Type.Literal('service'),
              Type.Literal('import'),
              Type.Literal('recorder'),
              Type.Literal('capture'),
              Type.Literal('relay'),
            ],
            { description: 'As `recordedBy.way` of an entry.' },
          ),
          by: Type.Optional(
            Type.String({ description: 'The client or the capture. Imports and the service itself have none.' }),
          ),
          lastRecordedAt: time('When it recorded last, by the clock of the service. Exact.'),
        },
        { $id: 'ChangeRecorder' },
      ),
      { description: `The one that recorded last comes first. At most ${maxRecorders}.` },
    ),
    since: Type.Optional(
      time(
        'Annals has not noted what recorded before this moment. Left out: it has noted all that this tenant recorded.',
      ),
    ),
  },
  {
    $id: 'ChangeRecorders',
    examples: [{ recorders: [{ way: 'recorder', by: 'shop', lastRecordedAt: '2026-09-15T10:11:12.345Z' }] }],
  },
);
