import { changeOfDocuments } from '../../src/recording/change.ts';
import type { createRecorder } from '../../src/recording/record-change.ts';

/** Records two changes of 16 MiB, one text and 200,000 members, and 100 with 1,000 paths each. */
export async function recordLongChanges(record: ReturnType<typeof createRecorder>): Promise<void> {
  const create = (entity: string, entityId: string, after: string) => {
    const change = changeOfDocuments({
      type: 'create',
      entity,
      entityId,
      actor: 'Robin',
      at: Date.now() - 1_000,
      related: [],
      before: undefined,
      after,
      name: undefined,
    });
    return change === 'unchanged' ? [] : [change];
  };
  const fields = (count: number, text: string) =>
    JSON.stringify(
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, `${text} ${index}`])),
    );
  await record(create('text', '1', JSON.stringify({ text: 'lorem ipsum '.repeat(1_398_000) })));
  await record(create('members', '1', fields(200_000, 'x'.repeat(40))));
  for (let place = 0; place < 100; place += 1)
    await record(create('wide', String(place), fields(1_000, 'x'.repeat(40))));
}
