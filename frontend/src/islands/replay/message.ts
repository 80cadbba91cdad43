/* One block in full, as the entry endpoint gives it. */
export type Version = {
  label: string; origin: string; revision: number | null; from: number; to: number; tokens: number;
  reason: string | null; strategy: string | null; policy: string | null; text: string; i: number; standing: boolean;
};
export type EntryDetail = {
  i: number; message: number; index: number; role: string; kind: string; type: string; tool: string | null;
  file: { path: string; start: number | null; end: number | null; action: string } | null;
  at: number | null; step: number; tokens: number; chars: number; sha: string; text: string; truncated: boolean; json: string;
  lifetime: { steps: number; tokens: number; cost_microusd: number | null }; versions: Version[];
};
