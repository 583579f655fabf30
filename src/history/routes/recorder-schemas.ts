import { Type } from 'typebox';
import { maxRecorders } from '../names/recorder-store.ts';

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
            Type.String({ description: 'The client or the capture. Missing for imports and the service itself.' }),
          ),
          lastRecordedAt: time('When it recorded last, by the clock of the service. Exact.'),
        },
        { $id: 'ChangeRecorder' },
      ),
      { description: `The newest first. At most ${maxRecorders}.` },
    ),
    since: Type.Optional(
      time('The list has only recorders that were active after this moment. Without this member the list is complete.'),
    ),
  },
  {
    $id: 'ChangeRecorders',
    examples: [{ recorders: [{ way: 'recorder', by: 'shop', lastRecordedAt: '2026-09-15T10:11:12.345Z' }] }],
  },
);
