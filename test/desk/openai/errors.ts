import OpenAI from 'openai';

/** The error that a call of the client rejects with. */
export async function errorOf(call: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error = await call.then(
    () => new Error('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OpenAI.APIError)) throw error;
  return error;
}
