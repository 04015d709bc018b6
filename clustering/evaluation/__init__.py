"""How good the stories are: a predicted partition scored against gold.

    from clustering.evaluation import evaluate, format_evaluation

    print(format_evaluation(evaluate("gold.jsonl", "assignments.jsonl")))

B-cubed (Bagga and Baldwin 1998; Amigó et al. 2009) is the figure to compare by; pairwise and
cross-lingual scores, adjusted mutual information (Vinh et al. 2010) and sizes say why it is what
it is.
"""

from clustering.evaluation.files import evaluate, evaluate_rows
from clustering.evaluation.report import format_evaluation
from clustering.evaluation.result import Evaluation
from clustering.evaluation.scores import PRF

__all__ = ["PRF", "Evaluation", "evaluate", "evaluate_rows", "format_evaluation"]
