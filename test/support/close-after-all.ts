import { afterAll, expect } from 'vitest';

type Resource = { close(): unknown } | { drop(): unknown };

/** What files have left open of which no test ran, so that nothing closed it: `-t` matches few. */
const left = new Map<Resource, string | undefined>();

/** Closes what the top level of a test file has opened after the file's last test, the last one first. */
export function closeAfterAll<Opened extends Resource>(resource: Opened): Opened {
  const { testPath } = expect.getState();
  for (const [earlier, path] of left) if (path !== testPath) void close(earlier);
  left.set(resource, testPath);
  afterAll(() => close(resource));
  return resource;
}

async function close(resource: Resource): Promise<void> {
  left.delete(resource);
  await ('close' in resource ? resource.close() : resource.drop());
}
