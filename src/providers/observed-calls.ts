import { type LanguageModels, type ModelCall, ProviderError, type ProviderFault } from './port.ts';

/** How a call of a provider ended. `aborted`: nobody waited for the answer any more. */
export type CallOutcome = 'answered' | ProviderFault;

/** Called when a call begins; the function that it returns, once when the call has ended. */
export type ObserveCall = (call: ModelCall) => (outcome: CallOutcome) => void;

/** The same models, with an observer of every call. */
export function observedCalls(models: LanguageModels, observe: ObserveCall): LanguageModels {
  return {
    async generate(call) {
      const end = observe(call);
      try {
        const answer = await models.generate(call);
        end('answered');
        return answer;
      } catch (error) {
        end(faultOf(error));
        throw error;
      }
    },

    async *stream(call) {
      const end = observe(call);
      let outcome: CallOutcome = 'aborted';
      try {
        for await (const event of models.stream(call)) {
          if (event.type === 'answer') outcome = 'answered';
          yield event;
        }
      } catch (error) {
        outcome = faultOf(error);
        throw error;
      } finally {
        end(outcome);
      }
    },
  };
}

function faultOf(error: unknown): ProviderFault {
  return error instanceof ProviderError ? error.fault : 'broken';
}
